#ifndef SAFELIGHT_CPROCESS_H
#define SAFELIGHT_CPROCESS_H
int safelight_cprocess_placeholder(void);
#endif
