// llama.cpp (npm i node-llama-cpp) on a GGUF file of generate_gguf.py: tokens a second of a prompt and after it.
//     node generate_llama.mjs MODEL.gguf [prompt 256] [tokens 32] [threads 2] [repeat 3]
// Prints one JSON object; the ids are those of `qkv bench generate`.
import {getLlama} from "node-llama-cpp";

const [file, prompt = 256, tokens = 32, threads = 2, repeat = 3] = process.argv.slice(2);
const llama = await getLlama({gpu: false, build: "never", logLevel: "error", maxThreads: +threads});
const model = await llama.loadModel({modelPath: file, gpuLayers: 0});
const context = await model.createContext({contextSize: 1024, batchSize: 512, threads: +threads, sequences: 1});
const sequence = context.getSequence();
const ids = Array.from({length: +prompt}, (_, i) => (i * 7919 + 13) % 31000);
let first = Infinity, after = Infinity;
for (let r = 0; r < +repeat; r++) {
    await sequence.clearHistory();
    const start = performance.now();
    let begun = 0, n = 0;
    for await (const _ of sequence.evaluate(ids, {temperature: 0, yieldEogToken: true})) {
        if (!begun) begun = performance.now();
        if (n++ === +tokens) break;
    }
    first = Math.min(first, begun - start);
    after = Math.min(after, performance.now() - begun);
}
console.log(JSON.stringify({prompt_tokens_per_s: 1e3 * prompt / first, tokens_per_s: 1e3 * tokens / after, threads: +threads}));
process.exit(0);
