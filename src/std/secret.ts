// secret.ts: a value that cannot be printed by accident. Owner of invariant 11.
//
// Whatever turns it into text (a template, JSON, a log line, util.inspect in a stack trace) gets `***`;
// only reveal() gives the value, and only where it is used.

import { inspect } from 'node:util'

export class Secret {
  readonly #value: string

  constructor(value: string) {
    this.#value = value
  }

  /** The value itself. Call it where the secret is used, and nowhere else. */
  reveal(): string {
    return this.#value
  }

  toString(): string {
    return '***'
  }

  toJSON(): string {
    return '***'
  }

  [inspect.custom](): string {
    return '***'
  }
}
