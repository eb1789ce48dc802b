// The bridge in the header of each preset, run as it stands against Mosquitto in place of the product, by its scheme
// (mqtt or mqtts), with the topics and messages of the product from the cases of the preset. Only the address is replaced,
// and over TLS the authority of the test is added.

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connectAsync } from 'mqtt'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { sandboxAccount } from '../../src/sandbox/sandbox.ts'
import { createAuthority } from '../support/certificates.ts'
import { eventually } from '../support/eventually.ts'
import { newFolder } from '../support/folders.ts'
import { hasMosquitto, startMosquitto } from '../support/mosquitto.ts'
import { startPipeline } from '../support/pipeline-world.ts'
import { bridgePresets, bridgeOfPreset } from '../support/preset-bridges.ts'

type Message = { topic: string; message?: string; base64?: string }
type Case = Partial<Message> & { payloads?: readonly unknown[]; messages?: readonly Message[] }

const keys = {
  AWS_ACCESS_KEY_ID: sandboxAccount.accessKeyId,
  AWS_SECRET_ACCESS_KEY: sandboxAccount.secret.reveal(),
}

/** The messages of the first case that gives a payload. */
async function messagesOf(preset: string): Promise<readonly Message[]> {
  const file = new URL(`../../config/presets/${preset}.cases.yaml`, import.meta.url)
  const { cases } = parse(await readFile(file, 'utf8')) as { cases: readonly Case[] }
  const found = cases.find(({ payloads }) => payloads !== undefined && payloads.length > 0)!
  return found.messages ?? [found as Message]
}

describe.skipIf(!hasMosquitto)('the bridge in the header of a preset runs', () => {
  test.each(bridgePresets)('%s', async (preset) => {
    const authority = createAuthority()
    const { cert, key } = authority.issue()
    const { ports } = await startMosquitto({
      listeners: [[], ['cafile %d/ca.pem', 'certfile %d/cert.pem', 'keyfile %d/key.pem']],
      files: { 'ca.pem': authority.ca, 'cert.pem': cert, 'key.pem': key },
    })
    const block = (await bridgeOfPreset(preset))!
    const secrets = [...block.matchAll(/\$\{env:(\w+)\}/g)].map(([, name = '']) => [name, 'secret'])
    const folder = await newFolder()
    await writeFile(join(folder, 'ca.pem'), authority.ca)
    const pipeline = await startPipeline({
      folder,
      config: (baseUrl) =>
        `${block
          .replace(
            /^( +)(- )?url: mqtts:.*$/m,
            `$1$2url: mqtts://localhost:${ports[1]}\n$1tls: { ca: "\${file:./ca.pem}" }`,
          )
          .replace(/url: mqtt:.*$/m, `url: mqtt://127.0.0.1:${ports[0]}`)}
defaults: { carrier: ACME, operator: OP1, asset_type: TRAILER }
spool: { path: ./spool, max_bytes: 1GiB, min_free_bytes: 1MiB }
delivery: { base_url: "${baseUrl}", batch: { linger: 5ms } }
ops: { listen: "127.0.0.1:0", stop_deadline: 5s }
`,
      deps: { env: { ...keys, ...Object.fromEntries(secrets) } },
    })
    const bridge = () => pipeline.status().messageSources[0]!
    await eventually(() => bridge().connectedAt !== null)
    const messages = await messagesOf(preset)
    const client = await connectAsync(`mqtt://127.0.0.1:${ports[0]}`)
    for (const { topic, message, base64 } of messages) {
      const bytes = base64 === undefined ? (message ?? '') : Buffer.from(base64, 'base64')
      await client.publishAsync(topic.replace(/^v3\/[^/]+/, 'v3/my-app@ttn'), bytes, { qos: 1 })
    }
    await client.endAsync()
    await eventually(() => pipeline.sandbox.stats().payloadsAccepted > 0)
    const { totals } = pipeline.status()
    process.stderr.write(
      `bridges: ${preset}: ${messages.length} published, ${bridge().messages} taken, ${pipeline.sandbox.stats().payloadsAccepted} payloads\n`,
    )
    expect({ taken: bridge().messages, unmappable: totals.unmappable }).toEqual({
      taken: messages.length,
      unmappable: 0,
    })
  })
})
