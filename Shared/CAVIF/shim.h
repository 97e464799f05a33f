#ifndef SAFELIGHT_CAVIF_H
#define SAFELIGHT_CAVIF_H
#include <avif/avif.h>
#endif
