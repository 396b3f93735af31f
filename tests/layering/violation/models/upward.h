// A planted violation: models may not include the simulator. The layering test must catch it.
#pragma once
#include "simulator/engine/network_engine.h"
