/** Every operation as every caller. */
import './sweep';
