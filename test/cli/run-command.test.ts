import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { deliveryOptions, deliverySchema } from '../../src/delivery/config.ts'
import { requireKeys } from '../../src/delivery/delivery.ts'
import { newFolder } from '../support/folders.ts'

const fromFile = (path: string) => ({ source: 'file', path }) as const
const fromEnvironment = { source: 'environment' } as const

describe('run --refuse-without-keys', () => {
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
