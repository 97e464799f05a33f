/* Provides the compiler flags of gexiv2; CMetadata includes the library itself. */
