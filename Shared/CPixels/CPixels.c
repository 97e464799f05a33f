#include "CPixels.h"
int safelight_pixels_version(void) { return 1; }
