package skein

// ConfigOf returns the configuration that the server is started with.
var ConfigOf = Options.config
