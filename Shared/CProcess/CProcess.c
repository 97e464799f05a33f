#include "CProcess.h"
int safelight_cprocess_placeholder(void) { return 0; }
