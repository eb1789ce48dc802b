// ids.ts: identifiers as branded types, so that the compiler refuses to mix them. A brand has no cost at run
// time.

import { randomUUID } from 'node:crypto'

declare const brand: unique symbol
type Branded<T, B extends string> = T & { readonly [brand]: B }

/** A payload's UUID in lower case, 36 characters (ingestion-api.md 2.1). */
export type PayloadId = Branded<string, 'PayloadId'>

/** A batch's UUID in lower case, 36 characters (ingestion-api.md 2.6). */
export type BatchId = Branded<string, 'BatchId'>

/** Number of a lane; never used twice in the life of a spool. */
export type LaneId = Branded<number, 'LaneId'>

/** Name of a provider as the config has it; `default` where there is only one. */
export type ProviderName = Branded<string, 'ProviderName'>

export type NewId = () => string

export const defaultProvider = 'default' as ProviderName

/** A random UUID: for batches and requests. Payloads get a name-based one, see mapping/identity.ts. */
export const newRandomId: NewId = () => randomUUID()
