// Compile the Python in wheels, so that no browser has to: node compile.mjs FOLDER WHEEL ...
// The folder has Pyodide and the wheels. Its Python compiles, because byte code is of one version.
// Sources are kept where a reader may look at them; elsewhere byte code replaces them.

const [folder, ...wheels] = process.argv.slice(2);
const { loadPyodide } = await import(`${folder}/pyodide.mjs`);
const python = await loadPyodide({ indexURL: folder });
python.FS.mkdir("/wheels");
python.FS.mount(python.FS.filesystems.NODEFS, { root: folder }, "/wheels");
python.globals.set("wheels", wheels);
python.runPython(`
import compileall, py_compile, site, tempfile, zipfile
from pathlib import Path

for name in wheels:
    is_read = name.startswith(("gemmlab-", "lessons-"))
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(f"/wheels/{name}") as wheel:
            wheel.extractall(folder)
        unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH  # the sources have no dates
        compileall.compile_dir(
            folder, quiet=2, legacy=not is_read, invalidation_mode=unchecked,
            stripdir=folder, prependdir=site.getsitepackages()[0],
        )
        with zipfile.ZipFile(f"/wheels/{name}", "w", zipfile.ZIP_DEFLATED) as wheel:
            for path in filter(Path.is_file, Path(folder).rglob("*")):
                if not path.with_suffix(".pyc").exists() or path.suffix == ".pyc":
                    wheel.write(path, path.relative_to(folder))
`);
