#include "models/base/egg.h"

#include "models/base/chicken.h"
