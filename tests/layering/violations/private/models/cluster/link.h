#pragma once
#include "models/base/yaml_reader.h"
