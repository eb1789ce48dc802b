// What a daemon does not use is not loaded: each package costs memory and time at the start, on a small box.

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

/** Prints the packages that are loaded with the daemon. */
const listPackages = `
  import { registerHooks } from 'node:module'
  const names = new Set()
  registerHooks({
    load(url, context, next) {
      const [, name] = /.*\\/node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url) ?? []
      if (name) names.add(name)
      return next(url, context)
    },
  })
  await import(${JSON.stringify(import.meta.resolve('../../src/app/app.ts'))})
  console.log(JSON.stringify([...names]))
`

test('clients of engines, mail, HTTP, credentials and expressions are loaded when they are needed', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', listPackages])
  const names = JSON.parse(stdout) as string[]
  expect(names).toContain('aedes')
  const early = /^(amqplib|@nats-io\/|mqtt$|nodemailer|@aws-sdk\/|@smithy\/|jsonata|undici|fastify)/
  expect(names.filter((name) => early.test(name))).toEqual([])
})
