#!/bin/sh
# Set up the environment $VENV for `make $1` ($1: lab, test or site), with the Python $PYTHON or the first that is new
# enough. INTEL=no leaves out Intel's CPU runtime. Exit status 1: the packages are not installed, and the last lines say
# why and which command helps. Without a working OpenCL device, which the site does not need, the status is 0, but
# $VENV/$1.done is not written, so that the next call looks again.
what=$1
bin=$VENV/bin
package=".[lab,pocl,distributed]"
elsewhere="make $what VENV=\$HOME/gemmlab-venv"
case $what in
  lab) groups="" size="160 MB to download, 0.7 GB on disk" ;;
  test) groups="--group dev" size="270 MB to download, 1.3 GB on disk" ;;
  site) package=. groups="--group site" size="90 MB to download, 0.5 GB on disk" ;;
  *) echo "set_up.sh sets up lab, test or site, not '$what'"; exit 1 ;;
esac

say() {
  printf '%s\n' "$@"
}

is_new_enough() {
  "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

works() {
  is_new_enough "$bin/python" && "$bin/python" -m pip --version >/dev/null 2>&1
}

# uv is quicker, but reads no settings of pip. Where it fails, pip says why.
install() {
  if [ -z "$PIP_INDEX_URL$PIP_NO_INDEX" ] && command -v uv >/dev/null; then
    uv pip install --quiet --python "$bin/python" "$@" >/dev/null 2>&1 && return
  fi
  "$bin/python" -m pip install --quiet --disable-pip-version-check "$@" 2>&1
}

# Whether less than 20 MB are free. A Python that cannot complete an environment does not say so.
is_full() {
  [ "$(df -Pk "$VENV" | awk 'NR == 2 { print $4 }')" -lt 20000 ]
} 2>/dev/null

# Explain what a command has printed, and open JupyterLab with what an earlier call has installed.
fail() {
  if is_full; then set -- "No space left"; fi
  case $1 in
    *"No space left"* | *"Disk quota exceeded"*)
      say "The disk is full: this takes $size. Free some space, or use another disk:" "  $elsewhere" ;;
    *"ensurepip is not available"* | *"No module named venv"* | *"No module named ensurepip"*)
      say "This Python cannot make environments. On Debian and Ubuntu, add what is missing:" \
        "  sudo apt install python3-venv  # or python3.N-venv for python3.N" ;;
    *"Permission denied"* | *"Read-only file system"*)
      say "You may not write to $VENV. Use another folder:" "  $elsewhere" ;;
    *Retrying* | *"Could not find a version"* | *"No matching distribution"*)
      say "$1" | grep ERROR: | tail -n 2
      say "The packages cannot be downloaded. Is there a network? Behind a proxy:" \
        "  HTTPS_PROXY=http://NAME:PORT make $what" \
        "docs/install.md says how to set up a machine without a network." ;;
    *) say "$1" "" "The set-up failed. To begin again:" "  make clean $what" ;;
  esac
  if [ "$what" = lab ] && "$bin/python" -c "import gemmlab, jupyterlab" 2>/dev/null; then
    say "Continuing with the packages that are installed."
    exit 0
  fi
  exit 1
}

output=$(LC_ALL=C mkdir -p "$VENV" 2>&1 && LC_ALL=C touch "$VENV" 2>&1) || fail "$output"
if ! works; then
  for python in "$PYTHON" python3.14 python3.13 python3.12 python3.11 none; do
    is_new_enough "$python" && break
  done
  if [ "$python" = none ]; then
    say "gemmlab needs Python 3.11 or later. If there is one that is not called $PYTHON, name it:" \
      "  make $what PYTHON=python3.12"
    exit 1
  fi
  # An environment that is cleared must be one: the folder might be somebody's home.
  if [ ! -e "$VENV/pyvenv.cfg" ] && [ -n "$(ls -A "$VENV")" ]; then
    say "$VENV is not empty, and no environment of Python. Remove it, or name another folder:" "  $elsewhere"
    exit 1
  fi
  # This completes an environment, too, whose set-up was interrupted, in most cases.
  output=$("$python" -m venv "$VENV" 2>&1)
  works || output=$("$python" -m venv --clear "$VENV" 2>&1)
  works || fail "$output"
fi

say "Installing Python packages into $VENV (up to $size) ..."
output=$(install --upgrade pip && install -e "$package" $groups) || fail "$output"

if [ "$what" = site ]; then
  touch "$VENV/site.done"
  exit
fi

say "Trying the OpenCL devices ..."
"$bin/python" -m gemmlab doctor >"$VENV/doctor.txt" 2>&1
status=$?
if [ $status = 3 ]; then
  say "PyPI's build of PoCL, which is of 2022, cannot compile for this processor. A newer one is free:" \
    "  sudo apt install pocl-opencl-icd  # Debian and Ubuntu, 110 MB"
  case $INTEL,$(cd "$VENV" && pwd) in
    no,*) ;;
    *" "*) say "Intel's CPU runtime would do, too, but does not start from a path with a space:" "  $elsewhere" ;;
    *)
      say "Adding Intel's CPU runtime instead (264 MB to download, 0.8 GB on disk; proprietary: Intel End User License" \
        "Agreement for Developer Tools). Ctrl-C stops this; make $what INTEL=no does without it ..."
      if output=$(install -e ".[intel]"); then
        "$bin/python" -m gemmlab doctor >"$VENV/doctor.txt" 2>&1
        status=$?
      else
        say "It could not be added:" "$output"
      fi ;;
  esac
fi
if [ $status = 0 ]; then
  tail -n 1 "$VENV/doctor.txt"
  touch "$VENV/$what.done"
else
  say "No OpenCL device works. This adds the CPU on Debian and Ubuntu; '$bin/python -m gemmlab doctor' says more:" \
    "  sudo apt install pocl-opencl-icd" \
    "What works without a device: the pictures, the simulator, and, in browsers with WebGPU, kernels on the GPU."
fi
