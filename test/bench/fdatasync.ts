// fdatasync.ts: what one durable write costs on this disk: append 4 KiB, fdatasync, again and again.
//
//   node test/bench/fdatasync.ts --count 2000 DIR     prints one JSON line (LatencySummary)

import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createLatency } from '../../src/simulate/ack-latency.ts'
import { writeLine } from './script.ts'

const { values, positionals } = parseArgs({
  options: { count: { type: 'string', default: '2000' } },
  allowPositionals: true,
})
const path = join(positionals[0] ?? '.', `fdatasync-${process.pid}`)
const block = Buffer.alloc(4096, 0x5a)
const latency = createLatency()
const file = openSync(path, 'a')
try {
  for (let written = 0; written < Number(values.count); written += 1) {
    const startedAtMs = performance.now()
    writeSync(file, block)
    fdatasyncSync(file)
    latency.record(performance.now() - startedAtMs)
  }
} finally {
  closeSync(file)
  rmSync(path)
}
writeLine(latency.summary())
