package middleware

import "net/url"

// FormField returns the value of a field of a form in application/x-www-form-urlencoded, for use as the value
// of a key. The field has to be there once: otherwise the guard and the handler might not mean the same one.
//
// The error is [ErrKeyRequired] if there is none or it is empty, and [ErrKeyInvalid] if there are several or
// the form is malformed anywhere. It does not repeat what the client sent.
func FormField(body []byte, name string) (string, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return "", KeyError(ErrKeyInvalid, "the form is malformed")
	}
	values := form[name]
	switch {
	case len(values) > 1:
		return "", Repeated("form:"+name, len(values))
	case len(values) == 0, values[0] == "":
		return "", Missing("form:" + name)
	}
	return values[0], nil
}
