// More seeds and messages are in fuzz.slow.test.ts.

import { testBrokenMessages } from './fuzz-tests.ts'

testBrokenMessages([1], 4000)
