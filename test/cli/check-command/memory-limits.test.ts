import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { memoryNeed, memoryWarning } from '../../../src/cli/check-command/memory-limits.ts'
import { loadConfig } from '../../../src/config/config.ts'
import { createAuthority } from '../../support/certificates.ts'
import { newFolder } from '../../support/folders.ts'

const MiB = 1024 ** 2
const unitFile = new URL('../../../systemd/telemetry-gateway.service', import.meta.url)

async function config(limits: string) {
  const path = join(await newFolder(), 'gateway.yaml')
  const { cert, key } = createAuthority().issue()
  const tls = '{ cert: "${env:CERT}", key: "${env:KEY}" }'
  await writeFile(
    path,
    `ingest: { broker: { listeners: [{ url: "mqtts://127.0.0.1:0", tls: ${tls} }], access: { anonymous: true }, limits: ${limits} } }
sources: [{ name: a, topic: "a/{device}", map: { time: { path: t, format: ms }, latitude: { path: x }, longitude: { path: y } } }]
defaults: { carrier: ACME, operator: OP1, asset_type: TRACTOR }
delivery: { base_url: "http://127.0.0.1:1" }
`,
  )
  return (await loadConfig(path, { env: { CERT: cert, KEY: key } })).config
}

async function unitWith(high: string, max: string) {
  const root = await newFolder()
  const unit = join(root, 'system.slice/telemetry-gateway.service')
  await mkdir(unit, { recursive: true })
  await writeFile(join(unit, 'memory.high'), `${high}\n`)
  await writeFile(join(unit, 'memory.max'), `${max}\n`)
  return root
}

describe('the memory of the unit', () => {
  test('is enough for the default limits, also where all connections use TLS', async () => {
    const text = await readFile(unitFile, 'utf8')
    const high = Number(/^MemoryHigh=(\d+)M$/m.exec(text)?.[1]) * MiB
    expect(memoryNeed(await config('{}'))).toBeLessThanOrEqual(high)
    expect(Number(/^MemoryMax=(\d+)G$/m.exec(text)?.[1]) * 1024 * MiB).toBeGreaterThan(high)
  })

  test('is compared with raised limits', async () => {
    const root = await unitWith(String(1536 * MiB), String(2048 * MiB))
    expect(await memoryWarning(await config('{}'), root)).toBeNull()
    const raised = await config('{ max_connections: 30000 }')
    expect(await memoryWarning(raised, root)).toMatchObject({
      what: expect.stringMatching(/can need 3\.\d GiB.*1\.5 GiB/),
    })
    expect(await memoryWarning(raised, await unitWith('max', 'max'))).toBeNull()
    expect(await memoryWarning(raised, await newFolder())).toBeNull()
  })
})
