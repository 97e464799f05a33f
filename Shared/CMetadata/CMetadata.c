#include "CMetadata.h"
#include <gexiv2/gexiv2.h>
int safelight_cmetadata_placeholder(void) { return gexiv2_initialize(); }
