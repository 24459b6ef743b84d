// Package browser tests the pages of inspector in a headless Chromium, on a real Redis. It is a module of its own, so that the
// library that drives the browser reaches no user. Its tests are skipped if there is no Chromium.
//
// With -screenshots, TestScreenshots writes the pictures of docs/inspector.md.
package browser
