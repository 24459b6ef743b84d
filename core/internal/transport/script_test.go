package transport

// echoScript answers with its first argument.
var echoScript = NewScript("return ARGV[1]")
