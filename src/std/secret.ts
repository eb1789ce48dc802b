// secret.ts: a value that nothing prints by accident. Owner of invariant 11.
//
// Conversion to text (a template, JSON, a log line, util.inspect in a stack trace) gives `***`. Only reveal()
// gives the value; it is called only where the value is used.

import { createHmac, randomBytes } from 'node:crypto'
import { inspect } from 'node:util'

/** What stands in the place of a secret. */
export const hiddenText = '***'

const secretName = /pass|pwd|secret|token|key|hash|auth|credential/i

/** Whether a value with this name may be a secret: an option, a variable, a property that a device sent. */
export function namesSecret(name: string): boolean {
  return secretName.test(name)
}

const markKey = randomBytes(32)

export class Secret {
  readonly #value: string
  /** Makes two secrets differ for isDeepStrictEqual(), which does not see `#value`. Tells nothing else. */
  readonly mark: string

  constructor(value: string) {
    this.#value = value
    this.mark = createHmac('sha256', markKey).update(value).digest('base64')
  }

  /** The value itself. Call it only where the secret is used. */
  reveal(): string {
    return this.#value
  }

  toString(): string {
    return hiddenText
  }

  toJSON(): string {
    return hiddenText
  }

  [inspect.custom](): string {
    return hiddenText
  }
}
