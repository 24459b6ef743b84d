package transport

// echoScript returns its first argument.
var echoScript = NewScript("return ARGV[1]")
