#include <string>

#include "models/base/text.h"
