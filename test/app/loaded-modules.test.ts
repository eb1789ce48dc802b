// What a start of the daemon loads: each module costs memory for as long as it runs, in each thread that loads it.

import { execFile } from 'node:child_process'
import { resolve } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const run = promisify(execFile)
const src = resolve(import.meta.dirname, '../../src')

/** The packages that a module loads, also by what `then` does with its exports, and whether Node loads its own copy of undici. */
async function loadedBy(path: string, then = ''): Promise<{ packages: string[]; secondClient: boolean }> {
  const script = `
    import { registerHooks } from 'node:module'
    const packages = new Set()
    registerHooks({
      load(url, context, next) {
        const [, name] = /node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url) ?? []
        if (name !== undefined) packages.add(name)
        return next(url, context)
      },
    })
    const module = await import(${JSON.stringify(resolve(src, path))})
    ${then}
    const secondClient = process.moduleLoadList.some((name) => name.endsWith('internal/deps/undici/undici'))
    console.log(JSON.stringify({ packages: [...packages], secondClient }))
    process.exit()`
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script], {
    timeout: 20_000,
  })
  return JSON.parse(stdout) as { packages: string[]; secondClient: boolean }
}

test('the main thread has no HTTP client, signer, mail client or client of another broker before it needs one', async () => {
  const { packages, secondClient } = await loadedBy('app/app.ts')
  expect(packages).toContain('aedes')
  expect(packages).not.toContain('undici')
  expect(packages).not.toContain('nodemailer')
  expect(packages).not.toContain('@smithy/signature-v4a')
  for (const client of ['mqtt', 'amqplib', '@nats-io/transport-node', '@nats-io/jetstream'])
    expect(packages).not.toContain(client)
  expect(secondClient).toBe(false)
})

test('the sender thread has one HTTP client', async () => {
  const { packages, secondClient } = await loadedBy('delivery/transport/submit.ts')
  expect(packages).toContain('undici')
  expect(secondClient).toBe(false)
})

// An alert must leave also where no file can be opened any more.
test('the clients of webhooks and mail are loaded when their receivers are made, before the first alert', async () => {
  const then = `
    const deps = { env: {}, proxy: { from: 'none' } }
    const url = { reveal: () => 'http://127.0.0.1/' }
    module.createReceiver(deps, { type: 'webhook', url, body: 'json', timeout: 1000 })
    const mail = { host: '127.0.0.1', security: 'none', sender: 'a@b', recipients: ['c@d'] }
    module.createReceiver(deps, { type: 'email', ...mail })
    while (!packages.has('undici') || !packages.has('nodemailer')) await new Promise(setImmediate)`
  const { packages } = await loadedBy('alerts/receivers/receivers.ts', then)
  expect(packages).toEqual(expect.arrayContaining(['undici', 'nodemailer']))
})
