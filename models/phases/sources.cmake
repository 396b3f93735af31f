set(phases_sources phases/dataset.cc phases/length.cc phases/yaml.cc)
set(phases_headers phases/dataset.h phases/length.h phases/phases.h phases/yaml.h)
