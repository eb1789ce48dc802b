import { describe } from 'vitest'
import { largest, testHostileBodies } from './hostile-bodies.ts'

testHostileBodies(300)

describe('of the largest size', () => {
  testHostileBodies(300, largest)
})
