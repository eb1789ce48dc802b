import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { deliveryOptions, deliverySchema } from '../../src/delivery/config.ts'
import { requireKeys } from '../../src/delivery/delivery.ts'
import { runCli } from '../support/cli-world.ts'
import { newFolder } from '../support/folders.ts'

const fromFile = (path: string) => ({ source: 'file', path }) as const
const fromEnvironment = { source: 'environment' } as const

describe('run --refuse-without-keys', () => {
  test.each([
    ['there is no file of keys', fromFile('keys.json'), null, /There is no file .*keys\.json/],
    ['the file of keys is empty', fromFile('keys.json'), '\n', /keys\.json is empty/],
    [
      'systemd passes none',
      fromFile('keys.json'),
      '{}',
      /keys\.json is empty\. systemd passes it: LoadCredential/,
    ],
    ['the environment has none', fromEnvironment, null, /AWS_ACCESS_KEY_ID is not set/],
  ])(
    'refuses to start where %s, with status 2, the reason and the cure',
    async (_name, credentials, text, why) => {
      const folder = await newFolder()
      if (text !== null) await writeFile(join(folder, 'keys.json'), text)
      const config = join(folder, 'gateway.yaml')
      await writeFile(
        config,
        `ingest: { broker: { access: { anonymous: true } } }\nsources: [{ name: a, preset: simulator }]\ndelivery: ${JSON.stringify({ base_url: 'http://127.0.0.1:9', credentials })}\n`,
      )
      const env = { CREDENTIALS_DIRECTORY: folder }
      const { status, stderr } = await runCli(['run', '--refuse-without-keys', '--config', config], { env })
      expect([status, stderr]).toEqual([2, expect.stringMatching(/^CREDENTIALS_MISSING\n/)])
      expect(stderr).toMatch(why)
      expect(stderr).toMatch(/telemetry-gateway init.*\n?.*systemctl start/)
    },
  )

  const options = (...credentials: object[]) =>
    deliveryOptions(
      deliverySchema.parse({
        base_url: 'http://127.0.0.1:9',
        providers: credentials.map((one, index) => ({
          name: `p${index}`,
          provider_key: `k${index}`,
          credentials: one,
        })),
      }),
    )

  test.each([
    ['the file is not JSON', async (path: string) => writeFile(path, 'keys')],
    ['the file cannot be read', async (path: string) => mkdir(path)],
  ])('starts where keys are given, also where %s: the data of the devices is kept', async (_name, make) => {
    const path = join(await newFolder(), 'keys.json')
    await make(path)
    await expect(requireKeys({}, options(fromFile(path)))).resolves.toBeUndefined()
  })

  test('starts where one of several providers has keys, or another program is asked for them', async () => {
    const none = fromFile(join(await newFolder(), 'none.json'))
    await requireKeys({ AWS_ACCESS_KEY_ID: 'a' }, options(none, fromEnvironment))
    await requireKeys({}, options({ source: 'chain' }))
    await expect(requireKeys({}, options(none, fromEnvironment))).rejects.toMatchObject({
      code: 'CREDENTIALS_MISSING',
    })
  })
})
