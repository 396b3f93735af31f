#pragma once
#include "simulator/cost/clock.h"
