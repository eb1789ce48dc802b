// signing.ts: what signing costs, hashing included: batches of 500 payloads of 470 bytes, one after the other.
//
//   node test/bench/signing.ts [--count 400]     prints one JSON line (SigningResult)

import { createSigner } from '../../src/delivery/transport/sign.ts'
import { numbersOf, writeLine } from './script.ts'

export type SigningResult = { count: number; bodyBytes: number; wallMsEach: number; threadCpuMsEach: number }

const payloads = 500
const payloadBytes = 470
const options = numbersOf({ count: 400 })
const sign = createSigner({ accessKeyId: 'AKIDBENCH', secretAccessKey: 'bench-secret-bench-secret' })
const body = Buffer.alloc(payloads * (payloadBytes + 1) + 120, 0x61)

async function signMany(count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    // Another body each time, as in life.
    body.writeUInt32BE(index, 0)
    await sign(
      {
        method: 'POST',
        protocol: 'https:',
        hostname: 'ingest.example.com',
        host: 'ingest.example.com',
        path: '/v2/telemetry/batch',
        headers: { 'content-type': 'application/json' },
        body,
      },
      Date.now(),
    )
  }
}

await signMany(100)
const cpuAtStart = process.threadCpuUsage()
const startedAtMs = performance.now()
await signMany(options.count)
const wallMs = performance.now() - startedAtMs
const { user, system } = process.threadCpuUsage(cpuAtStart)
const result: SigningResult = {
  count: options.count,
  bodyBytes: body.length,
  wallMsEach: wallMs / options.count,
  threadCpuMsEach: (user + system) / 1000 / options.count,
}
writeLine(result)
