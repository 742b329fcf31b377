#pragma once

// To be removed: include matrix_error.h. The feed has an errors.h too, and tests and bindings see
// the headers of both.
#include "matrix_error.h"
