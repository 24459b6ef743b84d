package httpguard

import "net/url"

// FormField returns the value of a field of a form in application/x-www-form-urlencoded, for use as the value of a
// key. The field must occur exactly once. Otherwise the guard and the handler might use different values.
//
// The error is [ErrKeyRequired] if the field is missing or empty, and [ErrKeyInvalid] if it occurs several times or
// the form is malformed anywhere. The error does not repeat what the client sent.
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
