// Files: the documents that a saved page holds, and those that the page gives its reader.

// The runs in the text of the element #saved: [{name, document}, …]. None: the page follows the operator.
export function savedRuns(text) {
  return text.trim() === "" ? [] : JSON.parse(text);
}

// Makes the browser save a text as a file.
export function download(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60000); // the browser may still read it
}
