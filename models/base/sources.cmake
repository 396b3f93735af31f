set(base_sources base/error.cc base/figure.cc base/names.cc base/parse_units.cc base/place_in.cc base/xml_text.cc)
set(base_headers base/error.h base/figure.h base/limits.h base/names.h base/parse_units.h base/place_in.h base/random.h base/seeds.h base/units.h base/xml_text.h)
