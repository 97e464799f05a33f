#ifndef SAFELIGHT_CMETADATA_H
#define SAFELIGHT_CMETADATA_H
int safelight_cmetadata_placeholder(void);
#endif
