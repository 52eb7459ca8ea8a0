// How a page tells Python what a person does. A kernel handles the messages of a widget after the cell that runs; so where
// it offers subshells, they take a channel that the page opens, and are handled at once.
function talk(model) {
  const kernel = model.widget_manager?.kernel;
  if (!kernel?.supportsSubshells) return { say: (message) => model.send(message), end() {} };
  const comm = kernel.createComm("gemmlab"), late = new Promise((done) => setTimeout(done, 1000));
  const opened = Promise.race([comm.subshellStarted, late]).then(() => comm.open({ widget: model.get("channel") }));
  return {
    say: (message) => opened.then(() => { if (!comm.isDisposed) comm.send(message); }),
    end: () => opened.then(() => { if (!comm.isDisposed && !kernel.isDisposed) comm.close(); }),
  };
}
