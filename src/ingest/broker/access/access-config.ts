// access-config.ts: the section `ingest.broker.access` of the config: which clients may connect.

import { z } from 'zod'
import { secret } from '../../../std/schema.ts'

export const accessSchema = z
  .strictObject({
    anonymous: z
      .boolean()
      .default(false)
      .describe(
        'Whether clients without a user name may connect. If false, they are refused with CONNACK 5. If ' +
          'true and no users are configured, user names are not checked.',
      ),
    users: z
      .array(
        z.strictObject({
          name: z.string().min(1).describe('User name of the client.'),
          password: secret().describe('Password of the client.'),
        }),
      )
      .default([])
      .describe(
        'User names and passwords of clients. A client with another user name is refused with CONNACK 4.',
      ),
  })
  .prefault({})
  .superRefine(({ anonymous, users }, context) => {
    if (!anonymous && users.length === 0)
      context.addIssue({
        code: 'custom',
        message: 'must have anonymous: true or at least one user; otherwise no device can connect',
      })
    users.forEach(({ name }, index) => {
      if (users.findIndex((other) => other.name === name) < index)
        context.addIssue({
          code: 'custom',
          path: ['users', index, 'name'],
          message: `must be unique, found "${name}" twice`,
        })
    })
  })
