#pragma once
#include "models/cluster/link.h"
