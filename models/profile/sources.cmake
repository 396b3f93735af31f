set(profile_sources profile/profile.cc)
set(profile_headers profile/profile.h)
