// PhotoClient
