// PhotoModel
