// Excerpts are fetched, which a browser refuses to a page that is a file.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
