// publish-rules-config.ts: the section `ingest.broker.rules` of the config: what clients may publish to.

import { z } from 'zod'
import { patternProblem } from './allowed-topics.ts'
import type { PublishRulesOptions } from './publish-rules.ts'

const pattern = z
  .string()
  .max(1024)
  .meta({ examples: ['telemetry/v1/{client}/#', 'fleet/{identity}/+'] })
  .superRefine((text, context) => {
    const problem = patternProblem(text)
    if (problem !== null) context.addIssue({ code: 'custom', message: problem })
  })

export const publishRulesSchema = z
  .strictObject({
    publish: z
      .array(
        z.strictObject({
          identities: z
            .array(z.string().min(1))
            .min(1)
            .max(10_000)
            .optional()
            .describe('The identities that the rule is for. Default: every client, anonymous ones included.'),
          topics: z
            .array(pattern)
            .min(1)
            .max(256)
            .describe(
              'Topics that these clients may publish to: topic filters with + and #, in which {client} is the ' +
                'client id, {user} the user name, {cn} the name in the certificate and {identity} the name that ' +
                'the client proved. A client id, and a user name without a password, are what the client claims. ' +
                'Where a name is missing or has a /, + or #, the pattern allows nothing.',
            ),
        }),
      )
      .max(1000)
      .default([])
      .describe(
        'A client may publish to a topic that one of these rules allows. Without a rule, every topic is allowed. ' +
          'See also `identity` of a source.',
      ),
    on_violation: z
      .enum(['drop', 'close'])
      .default('drop')
      .describe(
        'What to do with a message that no rule allows, or that a source with `identity` takes under the name of ' +
          'another client. `drop` acknowledges, counts and drops it, so that the device does not send it again. ' +
          '`close` closes the connection without an acknowledgement: the device sends the message again and is ' +
          'closed again. A message of QoS 2 that was taken before a rule was added is acknowledged when it comes ' +
          'again, since it is stored.',
      ),
  })
  .prefault({})

export function publishRulesOptions({
  publish,
  on_violation,
}: z.output<typeof publishRulesSchema>): PublishRulesOptions {
  return {
    publish: publish.map(({ identities, topics }) => ({ identities: identities ?? null, topics })),
    onViolation: on_violation,
  }
}
