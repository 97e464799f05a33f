/* Provides the compiler flags of raqm and FreeType; CText includes the libraries themselves. */
