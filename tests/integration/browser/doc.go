// Package browser tests the pages of inspector in a headless Chromium, on a real Redis. Its tests are
// skipped if there is no Chromium.
//
// With -screenshots, TestScreenshots writes the pictures of docs/inspector.md.
package browser
