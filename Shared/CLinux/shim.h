#ifndef SAFELIGHT_CLINUX_H
#define SAFELIGHT_CLINUX_H
/* Swift's Glibc module does not declare these. */
#include <sys/eventfd.h>
#endif
