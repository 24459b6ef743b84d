package httpguard

import (
	"mime"
	"net/textproto"
	"strings"
)

// typed returns the media type of the body in lower case and its parameters, or false if the Content-Type is malformed.
func (p Payload) typed() (mediaType string, params map[string]string, ok bool) {
	mediaType, params, err := mime.ParseMediaType(p.ContentType)
	if charset, has := params["charset"]; has {
		params["charset"] = strings.ToLower(charset)
	}
	return mediaType, params, err == nil
}

// typeText returns the Content-Type as it is compared: in one spelling, with its parameters, which may change what the body
// means. The charset of JSON is UTF-8 whether or not the type says so.
func (p Payload) typeText() string {
	mediaType, params, ok := p.typed()
	if !ok {
		return p.ContentType
	}
	if isJSON(mediaType) && params["charset"] == "utf-8" {
		delete(params, "charset")
	}
	if text := mime.FormatMediaType(mediaType, params); text != "" {
		return text
	}
	return p.ContentType
}

// isJSON reports whether a media type is one of JSON documents.
func isJSON(mediaType string) bool {
	return mediaType == "application/json" || strings.HasSuffix(mediaType, "+json")
}

// codingsOf returns the codings of a Content-Encoding in their order, in one spelling: "" for none.
func codingsOf(lines []string) string {
	var codings []string
	for _, line := range lines {
		for coding := range strings.SplitSeq(line, ",") {
			coding = strings.ToLower(textproto.TrimString(coding))
			if coding != "" && coding != "identity" {
				codings = append(codings, coding)
			}
		}
	}
	return strings.Join(codings, ", ")
}
