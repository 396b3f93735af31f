#pragma once
#include "models/base/egg.h"
