package skein

// ConfigOf returns what the server is started with.
var ConfigOf = Options.config
