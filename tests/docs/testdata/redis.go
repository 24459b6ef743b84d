package snippet

var password string
